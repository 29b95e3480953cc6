/* SPDX-License-Identifier: MIT */
/* Numbers, durations, threads as text: the same words in the sentence, the report and JSON. */
#ifndef EXPLAIN_WORDS_H
#define EXPLAIN_WORDS_H

#include "base/buf.h"
#include "explain/model.h"

/* Durations as text: "2.53 ms". Returns buf. */
const char *ky_words_duration(char *buf, size_t size, double ns);
void ky_words_put_duration(struct ky_buf *b, double ns);
/* "1,234,567". */
void ky_words_put_number(struct ky_buf *b, uint64_t n);
/* "thread 3361 (flusher)"; "thread 3361 (flusher) on web-3" in a trace of several hosts. */
void ky_words_put_thread(struct ky_buf *b, const struct ky_explain *x, uint32_t thread);
/* "3361 (shop)": number and name of a process, by the number of its first thread. */
void ky_words_put_process(struct ky_buf *b, const struct ky_explain *x, uint32_t process);
/* "3", "3 on web-3": ky_explain_processor(). */
void ky_words_put_processor(struct ky_buf *b, const struct ky_explain *x, int64_t processor);

#endif

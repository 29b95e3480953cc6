/* SPDX-License-Identifier: MIT */
/* Places of probes: this program's own file, copies of it that are damaged, and arguments. */
#include "kernel/elf-places.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cmocka.h>

#define SELF "/proc/self/exe"

__attribute__((noinline, used)) int probed_function(int n);

int probed_function(int n)
{
	return n + 1;
}

__attribute__((noinline, used)) int probed_twin_1(int n);
__attribute__((noinline, used)) int probed_twin_2(int n);

int probed_twin_1(int n)
{
	return n * 3;
}

int probed_twin_2(int n)
{
	return n * 5;
}

/* Returns the number of places, and stores the last one. */
static int find_places(const struct elf *e, const char *name, uint64_t distance, uint64_t *ret)
{
	struct ky_buf places = {0};
	bool chooses;
	int n = elf_function_places(e, name, distance, &places, &chooses);

	if (n > 0)
		*ret = strtoull(strrchr(places.data, ' '), NULL, 0);
	assert_false(chooses);
	assert_int_equal(places.error, 0);
	ky_buf_deinit(&places);
	return n;
}

static void test_function(void **state)
{
	uint8_t there[8];
	uint64_t offset, inside;
	struct elf e;

	assert_int_equal(elf_open(&e, SELF), 0);
	assert_int_equal(find_places(&e, "probed_function", 0, &offset), 1);
	assert_true(offset + sizeof(there) <= e.size);
	memcpy(there, (const void *)(uintptr_t)probed_function, sizeof(there));
	assert_memory_equal(e.data + offset, there, sizeof(there));
	assert_int_equal(find_places(&e, "probed_function", 1, &inside), 1);
	assert_int_equal(inside, offset + 1);
	assert_int_equal(find_places(&e, "probed_function", 1 << 20, &inside), -ERANGE);
	assert_int_equal(find_places(&e, "probed_function", UINT64_MAX, &inside), -ERANGE);
	assert_int_equal(find_places(&e, "no_such_function", 0, &offset), -ENOENT);
	assert_int_equal(find_places(&e, "memcpy", 0, &offset), -ENOENT); /* another file's */
	elf_close(&e);
}

/* Two source files may have a function of one name, and a library two versions of one. */
static void test_functions_of_one_name(void **state)
{
	const char name[] = "probed_twin_1", other[] = "probed_twin_2";
	uint64_t offset;
	struct elf e, copy;
	uint8_t *data, *at;

	assert_int_equal(elf_open(&e, SELF), 0);
	data = malloc(e.size);
	assert_non_null(data);
	copy = (struct elf){data, e.size};
	memcpy(data, e.data, e.size);
	assert_int_equal(find_places(&copy, name, 0, &offset), 1);
	while ((at = memmem(data, e.size, other, sizeof(other) - 1)))
		memcpy(at, name, sizeof(name) - 1);
	assert_int_equal(find_places(&copy, name, 0, &offset), 2);
	assert_int_equal(find_places(&copy, name, 1, &offset), -ENOTUNIQ);
	free(data);
	elf_close(&e);
}

static void count_name(void *arg, const char *name)
{
	++*(unsigned *)arg;
}

static void count_sdt(void *arg, const struct elf_sdt *probe)
{
	assert_true(*probe->provider && *probe->name && probe->arguments);
	++*(unsigned *)arg;
}

/* Nothing outside the file is read, whatever its words say. */
static void test_damaged(void **state)
{
	unsigned n = 0, seed = 1;
	struct ky_buf places = {0};
	struct elf e, copy;
	bool chooses;
	uint8_t *data;

	assert_int_equal(elf_open(&e, SELF), 0);
	data = malloc(e.size);
	assert_non_null(data);
	for (unsigned i = 0; i < 300; i++) {
		/* its end is the end of the memory: a sanitizer sees what lies behind */
		copy = (struct elf){data, e.size};
		memcpy(data, e.data, e.size);
		for (unsigned k = 0; k < 8; k++) {
			seed = seed * 1103515245 + 12345;
			data[(seed >> 8) % (k < 4 ? 64 : e.size)] = (uint8_t)(seed >> 16);
			data[16 + (seed >> 8) % 48] ^= k & 1 ? 0x80 : 0;
		}
		memcpy(data, e.data, 16);
		elf_function_places(&copy, "probed_function", 0, &places, &chooses);
		elf_each_function(&copy, count_name, &n);
		elf_each_sdt(&copy, count_sdt, &n);
	}
	ky_buf_deinit(&places);
	free(data);
	elf_close(&e);
}

static void test_no_program(void **state)
{
	struct elf e;

	assert_int_equal(elf_open(&e, "/dev/null"), -ENOEXEC);
	assert_int_equal(elf_open(&e, "/proc"), -ENOEXEC);
	assert_int_equal(elf_open(&e, "/no such file"), -ENOENT);
}

static void expect_argument(const char *text, const char *wanted)
{
	char out[64] = "";
	bool is_known = elf_sdt_argument(1, text, out, sizeof(out));

	assert_int_equal(is_known, *wanted != '\0');
	if (is_known)
		assert_string_equal(out, wanted);
}

static void test_arguments(void **state)
{
#ifdef __aarch64__
	expect_argument("8@x0", "a1=%x0:u64");
	expect_argument("-4@w21 8@x1", "a1=%x21:s32");
	expect_argument("4@[sp, 12]", "a1=+12(%sp):u32");
	expect_argument("8@[x29]", "a1=+0(%x29):u64");
	expect_argument("-4@5", "a1=\\5:s32");
#else
	expect_argument("-8@%rdx", "a1=%dx:s64");
	expect_argument("4@%edi 8@%rsi", "a1=%di:u32");
	expect_argument("-1@%r10b", "a1=%r10:s8");
	expect_argument("2@%r8w", "a1=%r8:u16");
	expect_argument("4@-20(%rbp)", "a1=-20(%bp):u32");
	expect_argument("8@(%rax)", "a1=+0(%ax):u64");
	expect_argument("8@$5", "a1=\\5:u64");
	expect_argument("-4@$-1", "a1=\\-1:s32");
	expect_argument("8@8(%rax,%rbx,4)", "");
	expect_argument("8@name(%rip)", "");
	expect_argument("8@%xmm0", "");
#endif
	expect_argument("3@%rax", "");
	expect_argument("", "");
	expect_argument("8", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function),
		cmocka_unit_test(test_functions_of_one_name),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* span: file:open expect: for a child process to end.*kind = "pdf" */
#include "common.h"
static void *work(void *x)
{
	static const char *const kinds[] = {"txt", "png", "csv"};

	for (int i = 0; i < 500; i++) {
		int is_pdf = chance(.06);

		kymo_span_begin(file, open, kymo_string(kind, is_pdf ? "pdf" : kinds[below(3)]));
		spin(about(90));
		if (is_pdf) {
			pid_t child = vfork();

			if (!child) {
				execl("/bin/true", "true", (char *)NULL);
				_exit(1);
			}
			waitpid(child, NULL, 0);
		}
		spin(about(20));
		kymo_span_end(file, open);
		snooze(600);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}

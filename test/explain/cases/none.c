/* span: n:op args: normal|lognormal|gamma|pareto|uniform|weibull expect: nothing */
#include "common.h"
/* Durations without a cause, by the name of their distribution. */
static double normal_body(void)
{
	return about(1);
}
static double lognormal_body(void)
{
	return exp(1.0 * normal() - .5);
}
static double gamma_body(void)
{
	return exponential(.4) + exponential(.4);
}
static double pareto_body(void)
{
	return .4 * pow(uniform() + 1e-6, -1 / 1.8);
}
static double uniform_body(void)
{
	return .3 + uniform();
}
static double weibull_body(void)
{
	return pow(-log(uniform() + 1e-9), 1.6);
}
static const struct {
	const char *name;
	double (*body)(void);
} bodies[] = {
	{"normal", normal_body},
	{"lognormal", lognormal_body},
	{"gamma", gamma_body},
	{"pareto", pareto_body},
	{"uniform", uniform_body},
	{"weibull", weibull_body},
};
static double (*body)(void);
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		kymo_span_begin(n, op, kymo_i32(size, below(1000)),
			kymo_string(kind, below(3)   ? "a"
					  : below(2) ? "b"
						     : "c"));
		spin(body() * 40);
		kymo_span_begin(n, part);
		spin(body() * 60);
		kymo_span_end(n, part, kymo_i32(code, below(4)));
		spin(body() * 20);
		kymo_span_end(n, op, kymo_bool(ok, chance(.9)));
		snooze(exponential(200));
	}
	return x;
}
int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		if (argc == 2 && !strcmp(argv[1], bodies[i].name))
			body = bodies[i].body;
	}
	if (!body)
		return 2;
	run_threads(2, work);
}

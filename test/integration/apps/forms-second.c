/* SPDX-License-Identifier: MIT */
/* The second source of forms: it emits the same events once more. */
#include "forms.h"

void forms_second_source(void)
{
	kymo_event(forms, plain, kymo_i32(number, 100));
	kymo_trace(forms, shared, 2, "second");
}

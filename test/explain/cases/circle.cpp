/* span: draw:shape expect: circle */
#include "clock.h"
#include <memory>
#include <vector>
struct shape {
	virtual ~shape()
	{
	}
	virtual const char *name() const = 0;
	virtual void draw() const = 0;
};
struct box : shape {
	const char *name() const override
	{
		return "box";
	}
	void draw() const override
	{
		busy(25 + pick(8));
	}
};
struct line : shape {
	const char *name() const override
	{
		return "line";
	}
	void draw() const override
	{
		busy(20 + pick(8));
	}
};
struct circle : shape {
	const char *name() const override
	{
		return "circle";
	}
	void draw() const override
	{
		busy(480 + pick(50));
	}
};
int main()
{
	std::vector<std::unique_ptr<shape>> v;
	for (int i = 0; i < 900; i++)
		v.emplace_back(!pick(16) ? (shape *)new circle
			       : pick(2) ? (shape *)new box
					 : (shape *)new line);
	for (auto &s : v) {
		{
			kymo_span(draw, shape, kymo_string(type, s->name()),
				kymo_i32(layer, pick(4)));
			s->draw();
		}
		usleep(60);
	}
}

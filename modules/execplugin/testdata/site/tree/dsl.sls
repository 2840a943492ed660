#!pydsl
__pydsl__.set(ordered=True)
include("rendered", delayed=True)

for n in range(2):
    state("step{}".format(n)).test.show_notification(text="{} {} {}".format(n, __grains__["kernel"], __pillar__["shop"]["place"]))

s = state("both")
s.test.nop().require(test="step0")
s.shop.stocked(count=2)
state("now").test.nop()

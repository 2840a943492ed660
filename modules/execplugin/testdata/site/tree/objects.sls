#!pyobjects
import salt://maps.sls
from salt://maps.sls import Shop as Other, TEXT

with Test.nop("first"):
    Test.show_notification("second", text="{} {}".format(Other.name, pillar("shop:place")))
    with Test.nop("third", require=[Test("first")]):
        Test.nop("fourth", watch_in=Test("second"))

for n in range(2):
    Test.show_notification("loop{}".format(n), text=TEXT + str(salt.shop.list(n)) + grains("kernel"))
Test.show_notification("map", text=maps.Shop.name + __sls__)
include("rendered")

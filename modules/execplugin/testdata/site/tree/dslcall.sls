#!pydsl
first = state("compiled").test.show_notification(text="at compile time " + __opts__["id"])
ret = state("compiled")()
state("after").test.show_notification(text=ret[0][1]["comment"] + __sls__).require(cmd="x") if False else state("after").test.show_notification(text=ret[0][1]["comment"])

#!shout -x|yaml
in WHERE:
  test.nop: []

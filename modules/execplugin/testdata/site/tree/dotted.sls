#!yaml|dots
aDOTb:
  test.nop: []

#!ini_states
[z section]
fun = test.show_notification
text = hello

[a section]
fun = test.nop

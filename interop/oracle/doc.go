// Package oracle asks stock Salt, for differential tests: a long-lived stock minion without master answers the same calls as
// ours, on the same host and with the same configuration, grains and pillar. Here is what the tests of modules and of states
// share: the process and how it is spoken to (wire.py, functions.py, states.py), the form in which both sides' values are
// compared, the shell around a case, and where a run's time goes. Cases and comparisons are the tests' own. It is for tests only.
package oracle

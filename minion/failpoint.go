package minion

// failpoint is called between the steps of a job. Tests replace it, to crash the minion at each step.
var failpoint = func(step string) {}

package minion

// failpoint is called at the steps of a job between which a crash must be survived. Tests replace it.
var failpoint = func(step string) {}

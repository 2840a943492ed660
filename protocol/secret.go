package protocol

// SecretField is the field of a published job, and of what a master stores of it, that is true if the job's arguments are secret. A
// minion of ours then keeps no clear text of them on the disk; others ignore it.
const SecretField = "brine_secret"

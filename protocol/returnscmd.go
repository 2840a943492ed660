package protocol

// ReturnsCmd is a clear request of tools on the master's host, in the form of publish. It asks for the returns of
// the minions "ids" to the job "jid", because the tool may have missed their events. Only brine masters know it.
const ReturnsCmd = "brine_returns"

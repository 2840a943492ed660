package protocol

// ReturnsCmd is a clear request of tools on the master's host, in the form of publish: it asks for the returns of the job "jid" of the minions
// "ids", because events of them may have been missed. Only masters of ours know it.
const ReturnsCmd = "brine_returns"

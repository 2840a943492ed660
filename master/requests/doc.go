// Package requests answers what minions ask of the master, one small type for each concern, with the few things that it
// needs. A request reaches it as a protocol.Verified, which only the complete check of an encrypted request makes:
// there is no path here around that check. Salt's source is AESFuncs in salt/master.py and salt/daemons/masterapi.py.
//
// It has the mine, the file server, pushed files, pillar, the master's options, the events that minions fire, what they
// publish and run elsewhere, and the jobs that they fetch. Returns have a room of their own, package returns.
package requests

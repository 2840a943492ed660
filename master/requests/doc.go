// Package requests answers what minions ask of the master, one small type for each concern, with the few things that it
// needs. A request reaches it as a protocol.Verified, which only the complete check of an encrypted request makes:
// there is no path here around that check. Salt's source is AESFuncs in salt/master.py and salt/daemons/masterapi.py.
//
// So far it has the mine, the file server, pushed files, pillar, the master's options, the events that
// minions fire, and what they publish and run elsewhere.
package requests

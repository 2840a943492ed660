// Package requests answers the requests of minions. It has one small type per concern, with only the
// dependencies that it needs. A request arrives as a protocol.Verified, which only the complete check of an
// encrypted request returns, so that check cannot be bypassed. Salt's source is AESFuncs in salt/master.py and
// salt/daemons/masterapi.py.
//
// It covers the mine, the file server, pushed files, pillar, the master's options, events that minions fire,
// what they publish and run elsewhere, and jobs that they fetch. Package returns handles returns.
package requests

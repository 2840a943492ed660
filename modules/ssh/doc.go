// Package ssh is Salt's execution module "ssh": the keys that may log in as a user, the keys of hosts that are known, and the
// host's own keys. Salt's source: salt/modules/ssh.py. Where Salt edits a file in place, this package puts the finished file in
// its place at once.
package ssh

// Package privatehost gives differential tests a machine of their own, so that their cases can change users, mounts, addresses and
// files below /etc and leave nothing behind: the test runs once more in Linux namespaces, where every directory that a case may
// change gets a fresh layer (overlayfs). It is for tests only.
package privatehost

// Package privatehost runs differential tests on a private machine, so that their cases can change users, mounts,
// addresses and files below /etc without leaving changes behind. The test runs again in Linux namespaces, where every
// directory that a case may change gets a fresh layer (overlayfs). It is for tests only.
package privatehost

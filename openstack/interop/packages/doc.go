// Package packages tests the output of "make packages": with the tools of each format, and on booted Debian 12
// machines, where the debs replace stock's, are upgraded, removed and purged, and where cloud-init installs one. It
// is next to the tests with OpenStack because it boots the machines of package lab.
//
// The tests have the build tag packages; "make packages-test" builds the packages and runs them, as root.
package packages

// Package interop contains the tests of brine with real OpenStack services, which package lab starts. They have the
// build tag openstack and run with make openstack, as root on Debian 12. Without the tag, the package consists of
// this file.
package interop

// Package interop holds the tests of brine against real OpenStack services, which package lab starts. They have the build tag openstack and
// run by make openstack, as root on Debian 12. This file keeps the package from being empty without the tag.
package interop

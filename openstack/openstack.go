// Package openstack is the home of everything that brine does for OpenStack: agents assembled for Heat and Trove, the modules in them, and
// the Python package that runs inside Heat and Trove. It is a Go module of its own, so that the core depends on none of it.
package openstack

// Package openstack contains brine's support for OpenStack: agents assembled for Heat and Trove, their modules, and
// the Python package that runs inside Heat and Trove. It is a separate Go module, so that the core depends on none of
// it.
package openstack

//go:build openstack

package heat_test

// realTools also runs the cases for installed programs, which take half a minute.
const realTools = true

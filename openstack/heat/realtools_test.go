//go:build openstack

package heat_test

// realTools has the cases for installed programs run too, which take half a minute.
const realTools = true

//go:build !openstack

package heat_test

const realTools = false

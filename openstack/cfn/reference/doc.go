// Package reference compares the programs of heat-minion with those of heat-cfntools 1.4.2: 43 templates, signals,
// hooks, each in a copy of the host's root of its own. It has only tests, with the build tag openstack; they need root
// and Debian 12 with heat-cfntools.
package reference

// Package reference compares the programs of heat-minion with those of heat-cfntools 1.4.2: 43 templates, signals and
// hooks, each in its own copy of the host's root. It contains only tests, with the build tag openstack. They need
// root, and Debian 12 with heat-cfntools.
package reference

//go:build openstack && trove

// Package trove tests a real Trove, Debian's, whose guests are minions: trove-api, trove-taskmanager and
// trove-conductor with Keystone, RabbitMQ and MariaDB; the other services are lab/cloud. `make openstack-trove` runs
// it.
package trove

// Package lab starts real OpenStack services on loopback for tests: keystone, heat-api, heat-api-cfn and heat-engine of Debian's packages
// over a MariaDB and a RabbitMQ of their own, optionally swift and zaqar. It also starts guests: processes in mount and process namespaces
// of their own, with their own /etc, /var and /run, which take the place of virtual machines.
//
//	            ┌──────────── Lab ────────────────────────────────────────────┐
//	client ───► │ heat-api ──► RabbitMQ ──► heat-engine 0..n ──► plugins       │
//	guest  ───► │ heat-api-cfn ─► ec2token proxy ─► keystone      (yours)      │
//	            │                         all ──► MariaDB                     │
//	            └─────────────────────────────────────────────────────────────┘
//
// A guest can also be a machine: systemd and cloud-init of a Debian 12 of its own, booted by systemd-nspawn (DebianRoot, StartMachine).
// Either kind has the host's network, or that of a tenant behind a router that lets through what a test allows (StartNetwork).
//
// A lab keeps everything in one directory and has a block of ports of its own, so that several labs may run at once. Initializing the
// databases takes most of the time; it is done once per version of the packages and kept in the user's cache directory. A lab needs
// Linux, root, and the packages named in debian-packages.txt; interop/install-tools.sh installs them.
//
// All services end with the process that called Start, even when it is killed.
package lab

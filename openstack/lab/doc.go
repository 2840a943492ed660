// Package lab starts real OpenStack services on loopback for tests: keystone, heat-api, heat-api-cfn and heat-engine
// from Debian's packages, with their own MariaDB and RabbitMQ, and optionally swift and zaqar. It also starts guests,
// which replace virtual machines: processes in their own mount and process namespaces, with their own /etc, /var and
// /run.
//
//	            ┌──────────── Lab ────────────────────────────────────────────┐
//	client ───► │ heat-api ──► RabbitMQ ──► heat-engine 0..n ──► plugins       │
//	guest  ───► │ heat-api-cfn ─► ec2token proxy ─► keystone      (yours)      │
//	            │                         all ──► MariaDB                     │
//	            └─────────────────────────────────────────────────────────────┘
//
// A guest can also be a machine: its own Debian 12 with systemd and cloud-init, booted by systemd-nspawn (DebianRoot,
// StartMachine). Both kinds use the host's network, or the network of a tenant behind a router that forwards only
// what a test allows (StartNetwork).
//
// A lab keeps everything in one directory and has its own block of ports, so several labs can run at once.
// Initializing the databases takes most of the time; it is done once per version of the packages, and the result is
// kept in the user's cache directory. A lab needs Linux, root, and the packages named in debian-packages.txt;
// interop/install-tools.sh installs them.
//
// All services end with the process that called Start, even if it is killed.
package lab

"""OpenStack services as Salt masters: a sidecar master, its client, and plugins for Heat and Trove."""

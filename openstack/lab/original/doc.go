// Package original installs the programs that heat-minion replaces, for tests that compare them: os-collect-config,
// os-apply-config, os-refresh-config and heat-agents from the Python index at fixed versions, laid out like the image
// elements of heat-agents. heat-cfntools is not included: the lab's debian-packages.txt contains it.
//
//	os-collect-config ─► os-refresh-config ─► 20-os-apply-config ─► os-collect-config.conf, heat-config
//	                                       └► 55-heat-config ─► hooks/<group> ─► heat-config-notify ─► Heat
//
// [Install] fills a directory of the user's cache once. [Set.LayOut] writes the small part of an image that has fixed places, and
// [Set.Start] runs the agent in a guest of the lab. Both need Debian 12's Python.
package original

//go:build !custom || returners || returners.local

package all

import _ "github.com/brine-salt/brine/modules/returners/local" // returner local

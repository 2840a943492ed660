//go:build !custom || returners || returners.carbon

package all

import _ "github.com/brine-salt/brine/modules/returners/carbon" // returner carbon

//go:build !custom || returners || returners.rawfile_json

package all

import _ "github.com/brine-salt/brine/modules/returners/rawfile" // returner rawfile_json

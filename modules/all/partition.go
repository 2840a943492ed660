//go:build !custom || modules || modules.partition

package all

import _ "github.com/brine-salt/brine/modules/parted_partition" // execution module partition

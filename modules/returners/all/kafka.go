//go:build returners.kafka

package all

import _ "github.com/brine-salt/brine/modules/returners/kafka" // returner kafka

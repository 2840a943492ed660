package states_test

// Modules that the default build lacks, which states need.
import (
	_ "github.com/brine-salt/brine/modules/mysql"
)

package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/states/all"
)

// programVar makes the test's own program one of package cfn.
const programVar = "BRINE_TEST_CFN_PROGRAM"

func TestMain(m *testing.M) {
	if name := os.Getenv(programVar); name != "" {
		os.Unsetenv(programVar)
		var log *slog.Logger
		if os.Getenv("BRINE_TEST_CFN_DEBUG") != "" {
			log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		}
		if name == "manifest" {
			if err := manifest(os.Args[1]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
		os.Exit(Main(context.Background(), name, os.Args[1:], log))
	}
	os.Exit(m.Run())
}

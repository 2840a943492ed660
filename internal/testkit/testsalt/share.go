package testsalt

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

// shareVar is the variable that restricts a run to a share of the cases and command lines: "2/3" is the last third.
const shareVar = "BRINE_SHARE"

// InShare reports whether a name belongs to the share of this run. Without the variable, every name does.
func InShare(t testing.TB, name string) bool {
	t.Helper()
	text := os.Getenv(shareVar)
	if text == "" {
		return true
	}
	var share, shares uint32
	if _, err := fmt.Sscanf(text, "%d/%d", &share, &shares); err != nil || share >= shares {
		t.Fatalf("%s is %q, not a number and a larger one such as 2/3", shareVar, text)
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%shares == share
}

package consterr

import (
	"errors"
	"fmt"
	"testing"
)

func TestError(t *testing.T) {
	const known, other = Error("known"), Error("other")
	if err := fmt.Errorf("more: %w", known); !errors.Is(err, known) || errors.Is(err, other) || err.Error() != "more: known" {
		t.Error(err)
	}
}

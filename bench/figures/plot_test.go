package figures

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPlotIsWholeXMLWithAPointForEachValue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plot.svg")
	lines := []Line{{"ours", []float64{100, 1000, 5000}, []float64{0.1, 0.2, 0}}, {"peer", []float64{100, 1000, 5000}, []float64{1, 2, 9}}}
	if err := WriteSVG(file, "time", []Panel{{"by nodes", "nodes", "ms", lines}, {"nothing", "x", "y", nil}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if points := strings.Count(string(text), "<circle"); points != 5 {
		t.Fatalf("five values are above zero, %d points are drawn", points)
	}
	if strings.Contains(string(text), "NaN") || strings.Contains(string(text), "Inf") {
		t.Fatal("a coordinate is no number")
	}
}

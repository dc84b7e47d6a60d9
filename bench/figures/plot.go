package figures

import (
	"fmt"
	"math"
	"os"
	"strings"
)

// Line is one curve of a plot.
type Line struct {
	Name string
	X, Y []float64
}

// Panel is one plot: curves over a common axis, both axes logarithmic, because what is looked at is how cost grows.
type Panel struct {
	Title, X, Y string
	Lines       []Line
}

const (
	panelWidth, panelHeight = 420, 320
	marginLeft, marginRight = 64, 16
	marginTop, marginBottom = 40, 48
)

var colours = []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd"}

// WriteSVG draws the panels side by side; "": nowhere.
func WriteSVG(path, title string, panels []Panel) error {
	if path == "" || len(panels) == 0 {
		return nil
	}
	var out strings.Builder
	width, height := panelWidth*len(panels), panelHeight+28
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="18" text-anchor="middle" font-size="14">%s</text>`+"\n", width/2, title)
	for i, p := range panels {
		fmt.Fprintf(&out, `<g transform="translate(%d,28)">`+"\n", i*panelWidth)
		p.draw(&out)
		out.WriteString("</g>\n")
	}
	out.WriteString("</svg>\n")
	return os.WriteFile(path, []byte(out.String()), 0o644)
}

func (p Panel) bounds() (x0, x1, y0, y1 float64) {
	x0, x1, y0, y1 = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, l := range p.Lines {
		for i := range l.X {
			if l.X[i] > 0 && l.Y[i] > 0 {
				x0, x1, y0, y1 = min(x0, l.X[i]), max(x1, l.X[i]), min(y0, l.Y[i]), max(y1, l.Y[i])
			}
		}
	}
	if math.IsInf(x0, 0) {
		return 1, 10, 1, 10
	}
	y0, y1 = math.Pow(10, math.Floor(math.Log10(y0))), math.Pow(10, math.Ceil(math.Log10(y1)+1e-9))
	if x0 == x1 {
		x0, x1 = x0/2, x1*2
	}
	return
}

func (p Panel) draw(out *strings.Builder) {
	x0, x1, y0, y1 := p.bounds()
	left, right, top, bottom := float64(marginLeft), float64(panelWidth-marginRight), float64(marginTop), float64(panelHeight-marginBottom)
	atX := func(v float64) float64 { return left + (right-left)*math.Log(v/x0)/math.Log(x1/x0) }
	atY := func(v float64) float64 { return bottom - (bottom-top)*math.Log(v/y0)/math.Log(y1/y0) }
	fmt.Fprintf(out, `<text x="%g" y="24" text-anchor="middle" font-size="12">%s</text>`+"\n", (left+right)/2, p.Title)
	fmt.Fprintf(out, `<rect x="%g" y="%g" width="%g" height="%g" fill="none" stroke="#888"/>`+"\n", left, top, right-left, bottom-top)
	fmt.Fprintf(out, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", (left+right)/2, bottom+36, p.X)
	fmt.Fprintf(out, `<text x="14" y="%g" text-anchor="middle" transform="rotate(-90 14 %g)">%s</text>`+"\n", (top+bottom)/2, (top+bottom)/2, p.Y)
	for v := y0; v <= y1*1.001; v *= 10 {
		fmt.Fprintf(out, `<line x1="%g" x2="%g" y1="%g" y2="%g" stroke="#ddd"/><text x="%g" y="%g" text-anchor="end">%g</text>`+"\n", left, right, atY(v), atY(v), left-4, atY(v)+4, v)
	}
	ticks := map[float64]bool{}
	for i, l := range p.Lines {
		colour := colours[i%len(colours)]
		var points []string
		for j := range l.X {
			if !(l.X[j] > 0 && l.Y[j] > 0) {
				continue
			}
			points = append(points, fmt.Sprintf("%.1f,%.1f", atX(l.X[j]), atY(l.Y[j])))
			fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"><title>%s: %g, %g</title></circle>`+"\n", atX(l.X[j]), atY(l.Y[j]), colour, l.Name, l.X[j], l.Y[j])
			if !ticks[l.X[j]] {
				ticks[l.X[j]] = true
				fmt.Fprintf(out, `<text x="%.1f" y="%g" text-anchor="middle">%g</text>`+"\n", atX(l.X[j]), bottom+16, l.X[j])
			}
		}
		fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.Join(points, " "), colour)
		fmt.Fprintf(out, `<text x="%g" y="%g" fill="%s">%s</text>`+"\n", left+8, top+14+float64(14*i), colour, l.Name)
	}
}

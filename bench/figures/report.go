// Package figures is what the benches have in common: pairs of measurements, their ratios with an interval, and how they are shown.
package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// Row is one figure. Ratio and Target are ours / peer; a row without Target informs and judges nothing.
type Row struct {
	Name   string   `json:"name"`
	Ours   *float64 `json:"ours"`
	Peer   *float64 `json:"peer"`
	Ratio  *float64 `json:"ratio"`
	Target *float64 `json:"target"`
	Unit   string   `json:"unit"`
	OK     bool     `json:"ok"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Note   string   `json:"note,omitempty"`
	// MayBeZero says that nothing is a result, too.
	MayBeZero bool `json:"-"`
	compared  bool // has a peer
}

// OrZero marks a row whose figure may be 0, as a count of refusals.
func OrZero(row Row) Row {
	row.MayBeZero = true
	return row
}

// Check says which figures are missing: not measured, not a number, or 0 where the work cannot have cost nothing. It looks at no target.
func Check(rows []Row) error {
	var missing []string
	for _, row := range rows {
		switch {
		case row.Ours == nil:
			missing = append(missing, fmt.Sprintf("%q has no value of ours", row.Name))
		case *row.Ours <= 0 && !row.MayBeZero:
			missing = append(missing, fmt.Sprintf("%q is %v, and cannot be", row.Name, *row.Ours))
		case row.compared && row.Peer == nil:
			missing = append(missing, fmt.Sprintf("%q has no value of the peer", row.Name))
		case row.compared && *row.Peer <= 0 && !row.MayBeZero:
			missing = append(missing, fmt.Sprintf("%q is %v for the peer, and cannot be", row.Name, *row.Peer))
		}
	}
	if len(rows) == 0 {
		missing = append(missing, "there is none")
	}
	if len(missing) > 0 {
		return fmt.Errorf("figures are missing: %s", strings.Join(missing, "; "))
	}
	return nil
}

// Series are the values of one program by figure, one a round.
type Series map[string][]float64

// Add a value.
func (s Series) Add(name string, value float64) { s[name] = append(s[name], value) }

func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = math.Round(v*10000) / 10000
	return &v
}

// Compare makes a row of figure `key`: it passes when the upper end of the interval of the per-round ratios meets the target.
func Compare(name, unit string, target float64, ours, peer Series, key string) Row {
	r := Row{Name: name, Unit: unit, Ours: number(Median(ours[key])), Peer: number(Median(peer[key])), compared: true}
	if target > 0 {
		r.Target = &target
	}
	pairs := ratios(ours[key], peer[key])
	if len(pairs) == 0 {
		r.Note = "the peer could not run"
		if len(ours[key]) == 0 {
			r.Note = "ours could not run"
		}
		return r
	}
	low, high := interval(pairs)
	r.Ratio, r.Low, r.High = number(Median(pairs)), number(low), number(high)
	r.OK = target == 0 || high <= target
	return r
}

// Absolute makes a row without peer; `most` is the value ours must not exceed, 0 for none.
func Absolute(name, unit string, most float64, ours []float64) Row {
	r := Row{Name: name, Unit: unit, Ours: number(Median(ours)), OK: len(ours) > 0}
	if most > 0 {
		r.Target, r.OK = &most, r.OK && Median(ours) <= most
		r.Note = "target is absolute"
	}
	if len(ours) == 0 {
		r.Note = "could not run"
	}
	return r
}

func text(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case math.Abs(*v) >= 100:
		return fmt.Sprintf("%.0f", *v)
	case math.Abs(*v) >= 10:
		return fmt.Sprintf("%.1f", *v)
	}
	return fmt.Sprintf("%.3g", *v)
}

// Print a table; judged: with the verdicts.
func Print(out io.Writer, rows []Row, judged bool) {
	fmt.Fprintf(out, "%-46s %9s %9s %-6s %7s %-17s %7s  %s\n", "", "ours", "peer", "unit", "ratio", "95 % interval", "target", "ok")
	for _, r := range rows {
		span, verdict := "", ""
		if r.Low != nil {
			span = fmt.Sprintf("[%s, %s]", text(r.Low), text(r.High))
		}
		switch {
		case r.Ratio == nil && r.Ours == nil, r.Target != nil && r.Ratio == nil && r.Note != "target is absolute":
			verdict = "NO: " + r.Note
		case r.Target == nil, !judged:
		case r.OK:
			verdict = "ok"
		default:
			verdict = "MISSED"
		}
		fmt.Fprintf(out, "%-46s %9s %9s %-6s %7s %-17s %7s  %s\n", r.Name, text(r.Ours), text(r.Peer), r.Unit, text(r.Ratio), span, text(r.Target), verdict)
	}
}

// Form is "short" or another word for a run that is too short to judge by; "" for a whole run.
type Form string

// FormOf a run: the name, where the run is of that form.
func FormOf(name string, is bool) Form {
	if is {
		return Form(name)
	}
	return ""
}

// Unjudge takes the verdict from all rows of such a form.
func (f Form) Unjudge(rows []Row) {
	for i := range rows {
		if f != "" {
			rows[i].OK, rows[i].Note = false, string(f)+" form: judges nothing"
		}
	}
}

// Report prints the rows, and what such a form says nothing about.
func (f Form) Report(rows []Row, unjudged string) {
	Print(os.Stdout, rows, f == "")
	if f != "" {
		fmt.Printf("\nThis is the %s form: it shows that everything runs; no verdict on the %s is taken from it.\n", f, unjudged)
	}
}

// WriteJSON writes the rows into a file; "": nowhere.
func WriteJSON(path string, rows []Row) error {
	if path == "" {
		return nil
	}
	raw, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

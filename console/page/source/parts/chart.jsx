// Series over time on a canvas (uPlot), with the same series as a table: colour and dashes, letters, numbers.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

import { language, memory, number, percent, text } from '../language.js';
import { color_of } from '../theme.js';
import { Table } from './table.jsx';

const plot_height = 320; // pixels
const colors = 8; // --line_0 to --line_7
const dashes = [[], [8, 4], [2, 3], [12, 3, 2, 3]];

const writers = { ratio: percent, bytes: (value) => memory(value / 1048576), cards: (value) => number(value, 1) };
export const write_value = (unit, value) => (value === null || value === undefined ? '–' : (writers[unit] ?? ((amount) => number(amount, 2)))(value));

/// A letter per series, as in a table of a spreadsheet. 20 series at most.
export const letter_of = (index) => String.fromCharCode(65 + index);

export function sum_up_series(values) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return { last: null, least: null, mean: null, most: null };
  return {
    last: known[known.length - 1],
    least: Math.min(...known),
    mean: known.reduce((sum, value) => sum + value, 0) / known.length,
    most: Math.max(...known),
  };
}

function times_of(splits, span_s) {
  const style = span_s > 2 * 86400 ? { month: 'numeric', day: 'numeric' }
    : span_s > 86400 ? { month: 'numeric', day: 'numeric', hour: '2-digit' }
      : { hour: '2-digit', minute: '2-digit' };
  const format = new Intl.DateTimeFormat(language(), { ...style, hour12: false });
  return splits.map((second) => format.format(second * 1000));
}

// Letters at the right end of the lines, so that a line is found in the table. Where lines end close to each other the
// letters stand apart.
const letter_px = 13; // at least, from one letter to the next
function draw_letters(plot) {
  const ratio = devicePixelRatio;
  const { left, top, width, height } = plot.bbox;
  const ends = plot.series.slice(1).map((series, index) => {
    const values = plot.data[index + 1];
    const last = values.findLastIndex((value) => value !== null);
    return { letter: letter_of(index), color: series.stroke(), y: last < 0 ? null : plot.valToPos(values[last], 'y', true) };
  }).filter((end) => end.y !== null).sort((one, other) => one.y - other.y);
  let lowest = top + height;
  for (const end of ends.toReversed()) {
    end.y = Math.min(end.y, lowest);
    lowest = end.y - letter_px * ratio;
  }
  let highest = top;
  plot.ctx.save();
  plot.ctx.font = `700 ${11 * ratio}px system-ui, sans-serif`;
  plot.ctx.textBaseline = 'middle';
  for (const end of ends) {
    end.y = Math.max(end.y, highest);
    highest = end.y + letter_px * ratio;
    plot.ctx.fillStyle = end.color;
    plot.ctx.fillText(end.letter, left + width + 5 * ratio, end.y);
  }
  plot.ctx.restore();
}

/// What happened meanwhile, as lines from top to bottom.
function draw_marks(plot, marks) {
  const { top, height } = plot.bbox;
  plot.ctx.save();
  plot.ctx.lineWidth = devicePixelRatio;
  for (const { time, warning } of marks) {
    const x = Math.round(plot.valToPos(time, 'x', true));
    plot.ctx.strokeStyle = color_of(warning ? '--bad' : '--quiet');
    plot.ctx.setLineDash(warning ? [] : [3 * devicePixelRatio, 3 * devicePixelRatio]);
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, top);
    plot.ctx.lineTo(x, top + height);
    plot.ctx.stroke();
  }
  plot.ctx.restore();
}

function options_of(body, width, marks) {
  const ink = color_of('--ink');
  const grid = { stroke: color_of('--line'), width: 1 };
  const axis = { stroke: ink, grid, ticks: grid, font: '12px system-ui, sans-serif' };
  return {
    width,
    height: plot_height,
    legend: { show: false },
    padding: [null, 24, null, null], // on the right there are letters
    focus: { alpha: 0.15 },
    hooks: { drawAxes: [(plot) => draw_marks(plot, marks)], draw: [draw_letters] },
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: [body.from, body.to] },
      y: { range: (plot, least, most) => (body.unit === 'ratio' ? [0, Math.max(1, most)] : [0, most > 0 ? most * 1.05 : 1]) },
    },
    axes: [
      { ...axis, values: (plot, splits) => times_of(splits, body.to - body.from) },
      { ...axis, size: 72, values: (plot, splits) => splits.map((value) => write_value(body.unit, value)) },
    ],
    series: [{}, ...body.series.map((series, index) => ({
      label: series.name,
      stroke: color_of(`--line_${index % colors}`),
      width: 2,
      dash: dashes[Math.floor(index / colors) % dashes.length],
      points: { show: false },
      spanGaps: false,
    }))],
  };
}

const no_marks = [];

/// `marks`: moments, `time` in seconds and `warning`, that are drawn through the chart.
export function Chart({ body, label, drawing, marks = no_marks }) {
  const box = useRef(null);
  const drawn = useRef(null);
  // The line of the row under the pointer stands out.
  const stand_out = (index) => drawn.current?.setSeries(index === null ? null : index + 1, { focus: index !== null });
  useEffect(() => {
    const element = box.current;
    const plot = new uPlot(options_of(body, element.clientWidth, marks), [body.times, ...body.series.map((series) => series.values)], element);
    drawn.current = plot;
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: plot_height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      drawn.current = null;
      plot.destroy();
    };
  }, [body, drawing, marks.length]);
  return (
    <>
      <div class="chart" role="img" aria-label={label} ref={box} />
      <Table label={label} columns={[['column.series'], ['column.last', true], ['column.least', true], ['column.mean', true], ['column.most', true]]}>
        {body.series.map((series, index) => {
          const sum = sum_up_series(series.values);
          return (
            <tr key={index} onMouseEnter={() => stand_out(index)} onMouseLeave={() => stand_out(null)}>
              <th scope="row">
                <span class={`line line_${index % colors} dash_${Math.floor(index / colors) % dashes.length}`} aria-hidden="true" />
                {' '}{letter_of(index)} · {series.name}
              </th>
              {[sum.last, sum.least, sum.mean, sum.most].map((value, column) => <td key={column} class="number">{write_value(body.unit, value)}</td>)}
            </tr>
          );
        })}
      </Table>
      {body.more && <p>{text('history.more', { count: body.series.length })}</p>}
    </>
  );
}

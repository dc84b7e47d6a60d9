// Virtual scrolling: of thousands of rows only those in sight are elements.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

// Rows come and go in groups, so that most frames of a scroll change nothing on the page.
const group = 2;

/// Rows [first, last) of `count` that are to be drawn, for an element that scrolls: those in sight, and `spare` more above
/// and below, so that a fast scroll does not show empty space.
export function visible_rows(count, row_height, top, height, spare) {
  const first = Math.max(0, Math.floor(top / row_height / group) * group - spare);
  const last = Math.min(count, Math.ceil((top + height) / row_height / group) * group + spare);
  return { first: Math.min(first, last), last };
}

/// {element, first, last, scroll_to(index)}: `element` is the ref of the element that scrolls.
export function use_rows(count, row_height, spare = 4) {
  const element = useRef(null);
  const [range, set_range] = useState({ first: 0, last: Math.min(count, 40) });
  const measure = () => {
    const { scrollTop: top, clientHeight: height } = element.current;
    const next = visible_rows(count, row_height, top, height, spare);
    set_range((last) => (last.first === next.first && last.last === next.last ? last : next));
  };
  useLayoutEffect(() => {
    measure();
    const box = element.current;
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    box.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      box.removeEventListener('scroll', measure);
    };
  }, [count]);
  const scroll_to = (index) => {
    const box = element.current;
    const top = index * row_height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + row_height > box.scrollTop + box.clientHeight) box.scrollTop = top + row_height - box.clientHeight;
    measure();
  };
  return { element, first: Math.min(range.first, count), last: Math.min(range.last, count), scroll_to };
}

// The GPUs that a pod holds.
import { cores, memory, text } from '../language.js';

/// "A100-SXM4-80GB: 0, 3" and how much, one line per model.
export function Held({ cards }) {
  const models = new Map();
  for (const card of cards) models.set(card.model, [...(models.get(card.model) ?? []), card]);
  return (
    <ul class="held">
      {[...models].map(([model, held]) => (
        <li key={model}>{model || text('unknown_model')}{': '}
          {held.map(({ index, whole, cores: part, memoryMiB, guessed }) => (
            `${text('pods.card', { index: String(index) })} (${whole ? text('card.whole') : text('card.amount', { cores: cores(part), memory: memory(memoryMiB) })}` +
            `${guessed ? `, ${text('pods.guessed')}` : ''})`)).join(', ')}</li>
      ))}
    </ul>
  );
}

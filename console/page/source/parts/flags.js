// The sums of flags in the fleet, what is worst first: they are shown in this order.
export const node_flags = { not_ready: 1, sick: 16, over: 64, refused: 32, old: 8, changing: 4, cordoned: 2 };
export const card_flags = { sick: 1, cordoned: 2, mig: 4, whole: 8, over: 16, unknown: 32 };

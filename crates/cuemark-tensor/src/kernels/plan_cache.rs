//! Lists of a plan on the GPUs that have used it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::Result;
use candle_core::cuda_backend::cudarc::driver::CudaSlice;
use candle_core::cuda_backend::{CudaDevice, DeviceId};

use crate::map::LayerPlan;

/// A plan's lists on one GPU.
#[derive(Debug)]
pub(crate) struct PlanLists {
    pub(crate) gather: CudaSlice<u32>,
    pub(crate) inverse: CudaSlice<u32>,
    pub(crate) weights: CudaSlice<f32>,
}

/// Copied to a GPU when it first asks.
#[derive(Debug, Default)]
pub(crate) struct PlanCache(Mutex<HashMap<DeviceId, Arc<PlanLists>>>);

impl PlanCache {
    pub(crate) fn on(&self, device: &CudaDevice, plan: &LayerPlan) -> Result<Arc<PlanLists>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lists) = known.get(&device.id()) {
            return Ok(Arc::clone(lists));
        }
        let lists = Arc::new(PlanLists {
            gather: device.clone_htod(plan.gather())?,
            inverse: device.clone_htod(plan.inverse())?,
            weights: device.clone_htod(plan.weights())?,
        });
        known.insert(device.id(), Arc::clone(&lists));
        Ok(lists)
    }
}
